"""The SQS door: the AWS JSON protocol, so that boto3 works with nothing but an `endpoint_url`."""
