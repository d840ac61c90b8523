# Writes a saliency document with the shape of Kimi-K3: 92 layers, 896 experts, two kinds of
# text, one of which has a hostile name.
function list(name, scale,    i, text) {
	text = ""
	for (i = 0; i < 896; i++) text = text (i ? "," : "") value(i, scale)
	return "\"" name "\": [" text "]"
}
function value(i, scale) { return scale == 0 ? count[i] : sprintf("%.4f", count[i] * size[i] * scale) + 0 }
function layers(    block, i, text) {
	text = ""
	for (block = 1; block <= 92; block++) {
		for (i = 0; i < 896; i++) {
			seed = (seed * 1103515245 + 12345) % 2147483648
			count[i] = seed % 97 < 9 ? 0 : int(seed / 4096) % (40 + 5 * (i % 60))
			size[i] = 0.5 + (seed / 65536) % 7
		}
		text = text (block > 1 ? "," : "") "\n\"" block "\": {" list("count", 0) ", " list("reap_sum", block / 16) "}"
	}
	return "{" text "}"
}
BEGIN {
	seed = 1
	print "{\"schema\": \"ggufreap/saliency/v1\", \"source\": {\"structure_digest\": null, \"weights_digest\": null, \"architecture\": \"kimi-k3\", \"name\": \"K3\"},"
	print "\"num_experts\": 896, \"top_k\": 16, \"engine\": null, \"inputs\": [], \"tokens\": 131072,"
	print "\"layers\": " layers() ","
	print "\"sources\": [{\"label\": \"</title><script>alert(1)</script>\\u202egnp\", \"tokens\": 65536, \"layers\": " layers() "},"
	print "{\"label\": \"code\", \"tokens\": 65536, \"layers\": " layers() "}]}"
}
