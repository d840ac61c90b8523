//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// The distance to a server on loopback, in one contest.
const (
	farDelay       = 100 * time.Millisecond
	farRate        = 12.5e6 // bytes a second of one connection
	farConnections = 16
	farTarget      = 0.85 // of what so many connections can carry

	farMemory = 256 << 20 // bytes, at most

	// A header is read by 4 requests at most, and at most a tenth and farHeader more of it come
	// than it has: those of this model have two thousand bytes.
	farHeader = 512
)

// A fileServer serves the source's files by ranges.
type fileServer struct {
	url             string
	names           []string
	far             atomic.Bool // delays and limits
	requests, bytes atomic.Int64
}

// serve serves a folder on loopback until the program ends.
func serve(dir string) (*fileServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &fileServer{url: "http://" + l.Addr().String() + "/"}
	files := http.FileServer(http.Dir(dir))
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if s.far.Load() {
			time.Sleep(farDelay)
			w = &farWriter{ResponseWriter: w, server: s, begin: time.Now()}
		}
		files.ServeHTTP(w, r)
	}))
	return s, nil
}

// A farWriter keeps to the rate of a connection.
type farWriter struct {
	http.ResponseWriter
	server *fileServer
	begin  time.Time
	bytes  int64
}

func (w *farWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.server.bytes.Add(int64(n))
	time.Sleep(time.Until(w.begin.Add(time.Duration(float64(w.bytes) / farRate * float64(time.Second)))))
	return n, err
}

// remote prints how the program does when its source is on a server.
func (b *bench) remote() error {
	s, err := serve(b.path(source))
	if err != nil {
		return err
	}
	names, err := os.ReadDir(b.path(source))
	if err != nil {
		return err
	}
	first := s.url + names[0].Name()
	var urls []string
	for _, e := range names {
		s.names = append(s.names, e.Name())
		urls = append(urls, s.url+e.Name())
	}
	prune := func(from string) []string {
		return []string{"prune", "--plan", b.path(plan), "--shards", "14", "-o", b.path(release), from}
	}
	disk := append([]string{b.path(program)}, prune(b.path(source))...)
	disk[len(disk)-2] = b.path(copied)
	fmt.Printf("\nThe source on a server of this program's own, on loopback; the server's work is in both columns' machine.\n")
	for _, c := range []contest{
		{"prune over HTTP", 1.3, prune(first), release, source, strings.Join(disk, " "), "prune from disk"},
		{"reshard over HTTP", 1.0, []string{"reshard", "--shards", "14", "-o", b.path(resplit), first}, resplit, source,
			"mkdir " + b.path(copied) + " && cd " + b.path(copied) + " && curl -sS --remote-name-all " + strings.Join(urls, " ") + " && sync *.gguf && sha256sum *.gguf >/dev/null", "curl, sync, sha256sum"},
	} {
		got, err := b.contest(c, false)
		if err != nil {
			return err
		}
		b.hold(got.ratio <= c.target, "%s: ratio %.2f, want at most %.1f", c.name, got.ratio, c.target)
		b.hold(got.peak <= farMemory, "%s: %d MiB of memory, want at most %d", c.name, got.peak>>20, farMemory>>20)
	}
	if err := b.distant(s, prune(first)); err != nil {
		return err
	}
	if len(b.missed) > 0 {
		return fmt.Errorf("bounds were missed:\n%s", strings.Join(b.missed, "\n"))
	}
	return nil
}

// hold takes note of a bound that was missed.
func (b *bench) hold(held bool, format string, args ...any) {
	if !held {
		b.missed = append(b.missed, fmt.Sprintf(format, args...))
	}
}

// computed returns how many ranges the prune fetches for the release, and their bytes, as
// headers and plan tell; and the bytes of the headers.
func (b *bench) computed() (ranges int, bytes, headers int64, err error) {
	m, err := gguf.Open(b.path(source))
	if err != nil {
		return 0, 0, 0, err
	}
	defer m.Close()
	views, err := b.keptViews(m)
	if err != nil {
		return 0, 0, 0, err
	}
	layout, err := gguf.NewLayout(gguf.Contents{Version: m.Files[0].Version, Metadata: m.Metadata(), Views: views}, gguf.Split{Shards: 14})
	if err != nil {
		return 0, 0, 0, err
	}
	for _, shard := range layout.Shards {
		n, size := gguf.Ranges(shard.Views, rangeStep, rangeGap)
		ranges, bytes = ranges+n, bytes+size
	}
	for _, f := range m.Files {
		headers += f.DataOffset
	}
	return ranges, bytes, headers, nil
}

// keptViews are what the plan makes of the source.
func (b *bench) keptViews(m *gguf.Model) ([]gguf.View, error) {
	experts, err := reap.ReadExperts(m)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(b.path(plan))
	if err != nil {
		return nil, err
	}
	p, err := planfile.Read(data, experts)
	if err != nil {
		return nil, err
	}
	return reap.Views(context.Background(), m, experts, p)
}

// distant prints how much of what the connections can carry a prune gets, when every request
// takes its time and every connection is slow.
func (b *bench) distant(s *fileServer, args []string) error {
	s.far.Store(true)
	ranges, want, headers, err := b.computed()
	if err != nil {
		return err
	}
	files := int64(len(s.names))
	headers += headers/10 + farHeader*files
	var shares []float64
	var peak int64
	for range b.runs {
		if err := os.RemoveAll(b.path(release)); err != nil {
			return err
		}
		s.requests.Store(0)
		s.bytes.Store(0)
		took, err := measure(append([]string{b.path(program)}, args...))
		if err != nil {
			return err
		}
		requests, bytes := float64(s.requests.Load()), float64(s.bytes.Load())
		fmt.Printf("%-20s computed: %d ranges of %s for the release, at most %d requests and %d bytes for headers\n", "", ranges, gigabytes(want), 4*files, headers)
		b.hold(requests >= float64(ranges) && requests <= float64(int64(ranges)+4*files), "prune from far away: %.0f requests, computed were %d and up to %d for headers", requests, ranges, 4*files)
		b.hold(bytes >= float64(want) && bytes <= float64(want+headers), "prune from far away: %.0f bytes, computed were %d and up to %d for headers", bytes, want, headers)
		best := (requests*farDelay.Seconds() + bytes/farRate) / farConnections
		shares = append(shares, best/took.wall.Seconds())
		peak = max(peak, took.peak)
		fmt.Printf("%-20s %d requests, %s in %.1f s, peak %d MiB: %.0f %% of what %d connections of %.1f MB/s can carry with %s a request (at least %.0f %%)\n",
			"prune from far away", int64(requests), gigabytes(int64(bytes)), took.wall.Seconds(), peak>>20, 100*shares[len(shares)-1], farConnections, farRate/1e6, farDelay, 100*farTarget)
	}
	b.hold(median(shares) >= farTarget, "prune from far away: %.0f %% of what the connections can carry, want at least %.0f %%", 100*median(shares), 100*farTarget)
	b.hold(peak <= farMemory, "prune from far away: %d MiB of memory, want at most %d", peak>>20, farMemory>>20)
	return nil
}
