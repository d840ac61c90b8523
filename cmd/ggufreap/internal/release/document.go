package release

import (
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/hub"
)

// A Document says what was, or would be, written.
type Document struct {
	Schema        string         `json:"schema"`
	Folder        *document.Text `json:"folder"` // null for a dry run
	FileBytes     int64          `json:"file_bytes"`
	TensorBytes   int64          `json:"tensor_bytes"`
	PinDigest     *string        `json:"pin_digest"`     // null for a dry run, and where none is defined
	WeightsDigest *string        `json:"weights_digest"` // likewise
	Engine        *string        `json:"engine"`         // null where none was asked
	Shards        []shardOutput  `json:"shards"`
	Standing      *string        `json:"standing"` // of the architecture's pruning; null where nothing was pruned
	Documents     []string       `json:"documents"`
	Fetched       *int64         `json:"fetched"` // bytes that travelled; null for a source on this machine
	Saved         *int64         `json:"saved"`   // bytes of the source that did not
}

type shardOutput struct {
	File    document.Text `json:"file"`
	Size    int64         `json:"size"`
	Tensors int           `json:"tensors"`
	SHA256  *string       `json:"sha256"` // null for a dry run
}

// Document is the --json output of the commands that write a release.
func (r *Release) Document() Document {
	d := Document{
		Schema:      "ggufreap/release/v1",
		FileBytes:   r.Layout.Bytes(),
		TensorBytes: r.Layout.TensorBytes(),
		Documents:   append(r.documentNames(), r.Signed...),
		Standing:    r.Standing,
	}
	if far := hub.Of(r.Source); far != nil {
		fetched, saved := far.Saved(r.Source)
		d.Fetched, d.Saved = &fetched, &saved
	}
	if r.Engine != "" {
		d.Engine = &r.Engine
	}
	for i, name := range r.shardNames() {
		shard := r.Layout.Shards[i]
		out := shardOutput{File: document.Text(name), Size: shard.Size, Tensors: len(shard.Views)}
		if r.Pin != nil {
			sum := r.Pin.Files[i].SHA256.String()
			out.SHA256 = &sum
		}
		d.Shards = append(d.Shards, out)
	}
	if r.Pin != nil {
		folder := document.Text(r.Folder)
		d.Folder = &folder
	}
	if r.Pin != nil && !r.Pin.WeightsDigest.IsZero() {
		pin, weights := r.Pin.PinDigest.String(), r.Pin.WeightsDigest.String()
		d.PinDigest, d.WeightsDigest = &pin, &weights
	}
	return d
}
