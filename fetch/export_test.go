package fetch

import "time"

// Opens returns when a window is open, at the time or later.
func Opens(w Window, at time.Time) time.Time { return w.opens(at) }
