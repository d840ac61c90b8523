package manifest

import "syscall"

// roomOf asks the file system of the folder at path.
func roomOf(path string) (room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return room{}, err
	}
	block := int64(fs.Bsize)
	return room{free: bytesOf(fs.Bavail, block), block: max(block, 1), file: fileLimit()}, nil
}
