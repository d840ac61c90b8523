module ggufreap

go 1.26.0

tool honnef.co/go/tools/cmd/staticcheck

require (
	github.com/ebitengine/purego v0.10.0
	github.com/hybridgroup/yzma v1.28.0
)

require (
	github.com/BurntSushi/toml v1.5.0 // indirect
	github.com/jupiterrider/ffi v0.7.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)
