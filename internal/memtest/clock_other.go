//go:build !unix

package memtest

import "time"

// machineTime is time.Now where the kernel can't be asked portably; cases that
// need a clock outside of a bubble fail there.
func machineTime() time.Time { return time.Now() }
