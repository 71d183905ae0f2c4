package alloc

import "tieralloc/internal/config"

// Levels of the events that this package puts into the log.
const (
	logError = config.LogError
	logInfo  = config.LogInfo
	logDebug = config.LogDebug
)
