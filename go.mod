module ggufreap

go 1.26
