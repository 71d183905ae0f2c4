package stats

// What a report lists of CUDA devices at most. Powers of two, so that a masked index is in range.
const (
	DeviceMax = 8  // devices
	LeakMax   = 32 // live blocks that are listed for each
)

// The tiers of a device, the index of Device.Tiers.
const (
	DeviceFast uint = iota // the device's own memory
	DeviceSlow             // host memory that blocks were spilled to
	DeviceTierCount
)
