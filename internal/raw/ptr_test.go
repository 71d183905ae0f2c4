package raw

import "testing"

// address comes from where the compiler cannot see that it is 0.
var address uintptr

// TestPtrOfZero: the data plane compares with nil what Ptr makes of a word that may
// be 0. The compiler takes the result of unsafe.Add for not nil, and would leave
// such a comparison out.
func TestPtrOfZero(t *testing.T) {
	if p := Ptr(address); p != nil {
		t.Fatalf("Ptr(0) is said not to be nil: %v", p)
	}
	if p := (*uintptr)(Ptr(address)); p != nil {
		t.Fatalf("Ptr(0) as *uintptr is said not to be nil: %v", p)
	}
}
