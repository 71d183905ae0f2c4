// Package profile runs programs with TA_PROFILE and holds the profiles that they leave to what the
// programs did.
package profile
