package group

import (
	"syscall"

	"tieralloc/internal/raw"
)

// DeviceAccount returns the account of a device, by its UUID, and the group's caps of it, which are
// the given ones if this process is the first on the device. 0 is none: the device is not known by
// a UUID, the group has devices for all accounts, or it cannot be asked. bytes: Uncapped is none.
func DeviceAccount(uuid [2]uint64, soft, hard uint64) (account uintptr, caps Cap) {
	p, d := joined(), Device{uuid[0], uuid[1]}
	if p == nil || d == (Device{}) || filtered() {
		return 0, Cap{}
	}
	fd, errno := raw.OpenFile(self.path, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if errno != 0 {
		return 0, Cap{}
	}
	if raw.Identify(fd) == self.file && lockJoin(fd) == 0 {
		if account = p.findDevice(d, Cap{soft, hard}); account != 0 {
			p.setFloor(self.slot, account)
		}
		setLock(fd, joinByte, syscall.F_UNLCK)
	}
	raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	if account == 0 {
		return 0, Cap{}
	}
	return account, p.Caps[account&accountMask]
}

// findDevice returns the account of a device, a new one with the caps if it has none, or 0.
// Precondition: the caller has the lock for joining.
func (p *Page) findDevice(d Device, caps Cap) uintptr {
	for i := uintptr(FirstDevice); i < Accounts; i++ {
		if p.Devices[i] == d {
			return i
		}
		if p.Devices[i] == (Device{}) {
			p.Caps[i] = caps
			p.Devices[i] = d
			return i
		}
	}
	return 0
}
