package disk

import "syscall"

// roomOf asks the file system of the folder at path. Quotas that it does not count in
// its free space show only when files are reserved.
func roomOf(path string) (Room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return Room{}, err
	}
	block := int64(fs.Frsize) // the unit of the counts; Bsize is what reads in one go best
	if block <= 0 {
		block = int64(fs.Bsize)
	}
	return Room{Free: bytesOf(uint64(fs.Bavail), block), Block: max(block, 1), File: fileLimit()}, nil
}
