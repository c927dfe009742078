package goqueue

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

// What errors.Is can be asked of an error of this package.
var (
	ErrNotFound    = errors.New("goqueue: there is no such thing")
	ErrExists      = errors.New("goqueue: it is there already")
	ErrInvalid     = errors.New("goqueue: it cannot be meant so")
	ErrDenied      = errors.New("goqueue: not allowed, or unknown who asks")
	ErrFenced      = errors.New("goqueue: somebody else is this producer by now")
	ErrLeaseLost   = errors.New("goqueue: the lease is over, the message is delivered again")
	ErrUnavailable = errors.New("goqueue: the node cannot be reached, or cannot do it now")
	ErrTimeout     = errors.New("goqueue: no answer in time")
	// ErrMaybeStored: it was sent and never answered. Whoever sends it again may have it twice.
	ErrMaybeStored = errors.New("goqueue: sent and never answered, it may be stored")
)

// Error is what the broker refused, or that it could not be reached.
type Error struct {
	// Status is gRPC's word for it.
	Status codes.Code
	// Code is the broker's, such as TOPIC_NOT_FOUND; empty if it did not say one.
	Code string
	// Reason is the broker's own name for it.
	Reason  string
	Message string
	// AskedAgain: an earlier attempt may have been done, though no answer came.
	AskedAgain bool
}

func (e *Error) Error() string {
	name := e.Code
	if name == "" {
		name = e.Status.String()
	}
	return "goqueue: " + name + ": " + e.Message
}

// Is makes errors.Is(err, ErrNotFound) work.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Status == codes.NotFound && e.Code != "RECEIPT_HANDLE_INVALID"
	case ErrExists:
		return e.Status == codes.AlreadyExists
	case ErrInvalid:
		return e.Status == codes.InvalidArgument || e.Status == codes.OutOfRange
	case ErrDenied:
		return e.Status == codes.PermissionDenied || e.Status == codes.Unauthenticated
	case ErrFenced:
		return e.Code == "PRODUCER_FENCED"
	case ErrLeaseLost:
		switch e.Code {
		case "RECEIPT_HANDLE_EXPIRED", "RECEIPT_HANDLE_INVALID", "ALREADY_SETTLED", "MESSAGE_NOT_FOUND":
			return true
		}
	case ErrUnavailable:
		return e.Status == codes.Unavailable
	case ErrTimeout:
		return e.Status == codes.DeadlineExceeded
	}
	return false
}

func codeName(code pb.ErrorCode) string {
	if code == pb.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return ""
	}
	return strings.TrimPrefix(code.String(), "ERROR_CODE_")
}

// errorOf is what gRPC said, in our words.
func errorOf(err error) *Error {
	said := status.Convert(err)
	made := &Error{Status: said.Code(), Message: said.Message()}
	for _, detail := range said.Details() {
		if told, ok := detail.(*pb.Error); ok {
			made.Code, made.Reason, made.Message = codeName(told.Code), told.Details["reason"], told.Message
		}
	}
	return made
}

// errorIn is the error inside one result of many.
func errorIn(told *pb.Error) *Error {
	return &Error{Status: statuses[told.Code], Code: codeName(told.Code), Reason: told.Details["reason"], Message: told.Message}
}

// Of results inside an answer, which have no status of their own: those that errors.Is is asked for.
var statuses = map[pb.ErrorCode]codes.Code{
	pb.ErrorCode_ERROR_CODE_UNSPECIFIED:          codes.Unknown,
	pb.ErrorCode_ERROR_CODE_INVALID_ARGUMENT:     codes.InvalidArgument,
	pb.ErrorCode_ERROR_CODE_INVALID_MESSAGE:      codes.InvalidArgument,
	pb.ErrorCode_ERROR_CODE_INVALID_TOPIC:        codes.InvalidArgument,
	pb.ErrorCode_ERROR_CODE_INVALID_PARTITION:    codes.InvalidArgument,
	pb.ErrorCode_ERROR_CODE_TOPIC_NOT_FOUND:      codes.NotFound,
	pb.ErrorCode_ERROR_CODE_PARTITION_NOT_FOUND:  codes.NotFound,
	pb.ErrorCode_ERROR_CODE_NOT_LEADER:           codes.Unavailable,
	pb.ErrorCode_ERROR_CODE_LEADER_NOT_AVAILABLE: codes.Unavailable,
	pb.ErrorCode_ERROR_CODE_BROKER_NOT_AVAILABLE: codes.Unavailable,
	pb.ErrorCode_ERROR_CODE_REPLICATION_FAILED:   codes.Unavailable,
	pb.ErrorCode_ERROR_CODE_MESSAGE_TOO_LARGE:    codes.ResourceExhausted,
}
