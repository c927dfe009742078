"""The stream view: topics as rows, in a batch or as a stream. The driver plans offset ranges, executors read them."""
