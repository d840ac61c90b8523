"""Makes the npz and GGUF files of this folder, with numpy and nothing of this project.

The model: 3 blocks, of which 1 and 2 have 4 experts, 2 used for a token.
"""
import pickle
import struct
import zipfile

import numpy as np

counts = np.zeros((3, 4)); sums = np.zeros((3, 4))
counts[1] = [40, 9, 51, 0]; sums[1] = [80, 27, 51, 0]
counts[2] = [10, 20, 30, 40]; sums[2] = [5, 40, 15, 10]
part_counts = np.zeros((2, 3, 4)); part_sums = np.zeros((2, 3, 4))
part_counts[0, 1] = [30, 9, 11, 0]; part_sums[0, 1] = [70, 27, 1, 0]
part_counts[0, 2] = [10, 10, 0, 30]; part_sums[0, 2] = [5, 30, 0, 5]
part_counts[1] = counts - part_counts[0]; part_sums[1] = sums - part_sums[0]

whole = dict(
    saliency=sums, counts=counts, n_tokens=np.array(50), moe_layers=np.array([1, 2]),
    num_experts=np.array(4), top_k=np.array(2), num_hidden_layers=np.array(3),
    per_source=part_sums, per_source_counts=part_counts,
    source_labels=np.array(["code", "prose"]), source_tokens=np.array([25, 25]),
    act_mag=np.ones((3, 16)), act_n=np.ones(3),
)
np.savez("whole.npz", **whole)
np.savez_compressed("deflated.npz", **whole)
np.savez("subset.npz", saliency=sums, counts=counts, n_tokens=np.array(50), moe_layers=np.array([1, 2]),
         num_experts=np.array(4), top_k=np.array(2), derived_from=np.array("whole.npz"))
np.savez("untagged.npz", **dict(whole, source_labels=np.array(["all"]), source_tokens=np.array([50]),
                                per_source=np.zeros((1, 3, 4)), per_source_counts=np.zeros((1, 3, 4))))
np.savez("types.npz", saliency=sums.astype(">f4"), counts=counts.astype("<u2"))
np.savez("fortran.npz", saliency=np.asfortranarray(sums), counts=counts)
np.savez("nan.npz", saliency=np.where(sums == 27, np.nan, np.where(sums == 10, np.inf, sums)), counts=counts,
         moe_layers=np.array([1, 2]))
np.savez("smoke.npz", **dict(whole, saliency=sums * [[0], [1], [0]], counts=counts * [[0], [1], [0]],
                             moe_layers=np.array([1])))


def gguf(name, pairs, tensors):
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += text(key)
        if kind == "str":
            head += struct.pack("<I", 8) + text(value)
        elif kind == "u32":
            head += struct.pack("<II", 4, value)
        elif kind == "strs":
            head += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(s) for s in value)
    data = b""
    for tensor, array in tensors:
        head += text(tensor) + struct.pack("<I", array.ndim)
        head += b"".join(struct.pack("<Q", d) for d in reversed(array.shape))
        head += struct.pack("<IQ", 0, len(data))
        data += array.astype("<f4").tobytes()
        data += bytes(-len(data) % 32)
    with open(name, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def imatrix(block, experts):
    energy = np.array(experts, dtype="f4")          # [expert, input]
    count = np.array([[9], [0], [3], [1]]) * block  # [expert, 1]
    name = f"blk.{block}.ffn_"
    return [(name + "down_exps.weight.counts", count), (name + "down_exps.weight.in_sum2", energy),
            (name + "up_exps.weight.counts", count), (name + "up_exps.weight.in_sum2", energy + 1)]


gguf("imatrix.gguf", [("general.type", "str", "imatrix"), ("imatrix.datasets", "strs", ["text.txt"]),
                      ("imatrix.chunk_count", "u32", 1), ("imatrix.chunk_size", "u32", 512)],
     [("blk.0.ffn_down.weight.counts", np.array([[13]])), ("blk.0.ffn_down.weight.in_sum2", np.ones((1, 2)))]
     + imatrix(1, [[1, 2], [0, 0], [4, 0.5], [0.25, 0]]) + imatrix(2, [[8, 8], [0, 0], [1, 1], [16, 0.5]]))
gguf("sums.reap.gguf", [("reap.n_layer", "u32", 3), ("reap.n_expert", "u32", 4)],
     [t for b in (1, 2) for t in ((f"reap.s_sum.blk.{b}", sums[b]), (f"reap.count.blk.{b}", counts[b]))])

name = b"blk.1.ffn_down_exps.weight"
with open("legacy.dat", "wb") as f:
    f.write(struct.pack("<ii", 1, len(name)) + name + struct.pack("<ii", 3, 8) + np.ones(8, dtype="<f4").tobytes())
with zipfile.ZipFile("observations.pt", "w") as z:
    z.writestr("observations/data.pkl", pickle.dumps({1: {"total_tokens": 50}}, protocol=2))
    z.writestr("observations/version", "3\n")
with open("old.pt", "wb") as f:
    f.write(pickle.dumps({1: {"total_tokens": 50}}, protocol=2))
