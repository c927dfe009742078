"""The AWS JSON protocol of SQS: requests, answers, digests and rules, without any input or output."""
