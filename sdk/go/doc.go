// Package goqueue is the Go client of GoQueue, over gRPC.
//
// One Client is enough for a program. It may be used by many goroutines at once, keeps its connections open and makes
// them anew when they break. What is harmless to be asked twice is asked again, with growing pauses.
package goqueue
