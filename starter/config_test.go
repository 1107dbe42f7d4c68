package starter

import (
	"testing"
	"time"
)

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for name, cfg := range map[string]Config{
		"MaxStarts": {MaxStarts: -1}, "MaxPage": {MaxPage: -1}, "MaxDelete": {MaxDelete: 1001}, "MaxBytes": {MaxBytes: 1},
		"MaxPoll": {MaxPoll: time.Minute}, "Grace": {Grace: time.Minute}, "StartTimeout": {StartTimeout: -1},
	} {
		if _, err := New(nil, newRecorder(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
