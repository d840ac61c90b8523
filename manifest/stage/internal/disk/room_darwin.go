package disk

import "syscall"

// roomOf asks the file system of the folder at path.
func roomOf(path string) (Room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return Room{}, err
	}
	block := int64(fs.Bsize)
	return Room{Free: bytesOf(fs.Bavail, block), Block: max(block, 1), File: fileLimit()}, nil
}
