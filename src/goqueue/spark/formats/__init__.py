"""`valueFormat = json|avro|protobuf`: values decoded by the schema registry into typed columns."""
