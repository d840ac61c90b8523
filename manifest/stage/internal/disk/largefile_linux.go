package disk

import "syscall"

// largeFile lets a 32-bit program have files of more than 2 GiB. Package os sets it for
// every file but those that it opens in an os.Root.
const largeFile = syscall.O_LARGEFILE
