package hostdb

import "testing"

func TestLastmod(t *testing.T) {
	var l Lastmod
	if !l.Trusted() || l.Precision() != 0.875 || l.Recall() != 0.5 {
		t.Errorf("of a host that nothing is known of: %+v", l)
	}
	for i, trusted := range []bool{true, false, false} {
		l = l.Counts("s"+string(rune('1'+i)), 0, 1, 0)
		if l.Trusted() != trusted {
			t.Errorf("after %d false claims: %v", i+1, l.Trusted())
		}
	}
	if again := l.Counts("s3", 100, 0, 0); again != l {
		t.Errorf("a segment counted twice: %+v", again)
	}
	if again := l.Counts("s2", 100, 0, 0); again != l {
		t.Errorf("a segment from before: %+v", again)
	}
	// A site that lied a thousand times and then tells the truth is believed again
	// after as many visits as it takes to be three quarters of the last hundred.
	l = Lastmod{}.Counts("s", 0, 1000, 0)
	n := 0
	for name := "s"; !l.Trusted() && n < 100; n++ {
		name += "x"
		l = l.Counts(name, 1, 0, 0)
	}
	if n < 30 || n > 99 {
		t.Errorf("trusted again after %d claims that were true: %+v", n, l)
	}
	if l = (Lastmod{}).Counts("s", 60, 20, 30); l.Hits != 30 || l.False != 10 || l.Misses != 15 {
		t.Errorf("%+v", l)
	}
	if l.Recall() != 31.0/47 {
		t.Errorf("recall %v", l.Recall())
	}
}
