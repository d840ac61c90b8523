package loadable

// PreTokenizers are for tests that ask llama.cpp about each.
var PreTokenizers = preTokenizers
