package main

// crashBySignal does nothing: there are no signals.
func crashBySignal() {}
