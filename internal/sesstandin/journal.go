package sesstandin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journalName is the file within Config.Dir: one JSON object per accepted mail and line.
const journalName = "mails.jsonl"

// record is a mail as it is kept: everything else is read out of Raw again.
type record struct {
	ID               string            `json:"id"`
	Action           string            `json:"action"`
	Source           string            `json:"source"`
	To               []string          `json:"to"`
	Tags             map[string]string `json:"tags,omitempty"`
	ConfigurationSet string            `json:"configuration_set,omitempty"`
	ReceivedAt       time.Time         `json:"received_at"`
	Raw              []byte            `json:"raw"`
}

func (m Mail) record() record {
	return record{m.ID, m.Action, m.Source, m.To, m.Tags, m.ConfigurationSet, m.ReceivedAt, m.Raw}
}

// mail reads the message of a record.
func (r record) mail() (Mail, error) {
	m := Mail{
		ID: r.ID, Action: r.Action, Source: r.Source, To: r.To, Tags: r.Tags,
		ConfigurationSet: r.ConfigurationSet, ReceivedAt: r.ReceivedAt, Raw: r.Raw,
	}
	m.MessageID, m.EventType = decodeTag(r.Tags, tagMessageID), decodeTag(r.Tags, tagEventType)
	return m, readMessage(&m)
}

// journal appends accepted mails to a file. A written line survives the death of the process;
// it is not synced, so the death of the machine may take the last ones.
type journal struct {
	mu   sync.Mutex
	file *os.File
	size int64 // the end of the last whole line
}

// openJournal opens the file in dir and hands every mail in it to add, in order. A torn last
// line, left by a crash, is cut off and its length returned. Damage anywhere else is an error:
// it did not come from a crash.
func openJournal(dir string, add func(Mail)) (j *journal, torn int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, fmt.Errorf("mail folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("mail file: %w", err)
	}
	j = &journal{file: file}
	if torn, err = j.load(add); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("mail file %s: %w", file.Name(), err), file.Close())
	}
	return j, torn, nil
}

func (j *journal) load(add func(Mail)) (torn int64, err error) {
	r := bufio.NewReader(j.file)
	for n := 1; ; n++ {
		line, readErr := r.ReadBytes('\n')
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return 0, fmt.Errorf("line %d: %w", n, readErr)
		}
		if len(line) == 0 {
			return 0, nil
		}
		m, err := decodeLine(line)
		if err == nil {
			add(m)
			j.size += int64(len(line))
			continue
		}
		if _, peekErr := r.Peek(1); !errors.Is(peekErr, io.EOF) {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		return int64(len(line)), j.rewind()
	}
}

func decodeLine(line []byte) (Mail, error) {
	if !bytes.HasSuffix(line, []byte("\n")) {
		return Mail{}, io.ErrUnexpectedEOF
	}
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return Mail{}, err
	}
	return r.mail()
}

// append writes a mail. After an error the file ends where it did before.
func (j *journal) append(m Mail) error {
	line, err := json.Marshal(m.record())
	if err != nil {
		return fmt.Errorf("mail %s: %w", m.ID, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n, err := j.file.Write(append(line, '\n'))
	if err != nil {
		return errors.Join(fmt.Errorf("keep mail %s: %w", m.ID, err), j.rewind())
	}
	j.size += int64(n)
	return nil
}

// rewrite replaces the content by these mails: after a clear, and when most of the file is of
// mails that have been dropped.
func (j *journal) rewrite(mails []Mail) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	next, size, err := writeJournal(j.file.Name(), mails)
	if err != nil {
		return fmt.Errorf("rewrite mail file: %w", err)
	}
	old := j.file
	j.file, j.size = next, size
	return old.Close()
}

// writeJournal writes a whole file beside the old one and renames it over that, so that a crash
// leaves one of the two.
func writeJournal(name string, mails []Mail) (_ *os.File, size int64, err error) {
	file, err := os.OpenFile(name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, 0, err
	}
	w := bufio.NewWriter(file)
	enc := json.NewEncoder(w)
	for _, m := range mails {
		if err := enc.Encode(m.record()); err != nil {
			return nil, 0, errors.Join(err, file.Close())
		}
	}
	if err := errors.Join(w.Flush(), os.Rename(name+".new", name)); err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	size, err = file.Seek(0, io.SeekEnd)
	return file, size, err
}

// rewind cuts the file behind its last whole line.
func (j *journal) rewind() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
