package mysqlserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// provision makes o.Dir/data where it does not exist: a copy of the root's template, which is made once. Where the
// template cannot be shared (a cache folder that belongs to another user) the data folder is made from nothing.
func provision(ctx context.Context, o Options) error {
	if err := os.MkdirAll(filepath.Join(o.Dir, "tmp"), 0o750); err != nil {
		return err
	}
	data := filepath.Join(o.Dir, "data")
	if o.Root.Source == Container {
		return os.MkdirAll(data, 0o750) // the image fills it
	}
	if exists, err := filled(data); err != nil || exists {
		return err
	}
	err := ensureTemplate(ctx, o.Root)
	if err == nil {
		err = copyTree(o.Root.templateAt, data)
	}
	if errors.Is(err, fs.ErrPermission) {
		o.Logger.Info("the template data folder cannot be shared, making one from nothing", "reason", err)
		err = makeData(ctx, o.Root, data)
	}
	return err
}

// filled reports whether dir exists with something in it. A folder appears here only by a rename of a complete one, so
// that is all there is to ask.
func filled(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 0, err
}

// ensureTemplate makes the template unless it is there. Of two processes that need it one makes it.
func ensureTemplate(ctx context.Context, r Root) error {
	if exists, err := filled(r.templateAt); err != nil || exists {
		return err
	}
	lock, err := lockFile(ctx, r.templateAt+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if exists, err := filled(r.templateAt); err != nil || exists {
		return err
	}
	return makeData(ctx, r, r.templateAt)
}

// copyTree copies the files below from, and then gives the copy the name to.
func copyTree(from, to string) error {
	tmp := to + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(tmp, rel), info.Mode().Perm())
		}
		return copyFile(path, filepath.Join(tmp, rel), info.Mode().Perm())
	})
	if err != nil {
		return fmt.Errorf("copy template data folder: %w", err)
	}
	return replaceDir(tmp, to)
}

// copyFile leaves the copying to the kernel, which shares the blocks where the file system can.
func copyFile(from, to string, mode fs.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = dst.ReadFrom(src)
	return errors.Join(err, dst.Close())
}

// replaceDir renames from to to, where an empty folder may be in the way.
func replaceDir(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
