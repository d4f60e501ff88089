"""HTTP: decodes a request, asks the scheduler, encodes its answer; decides nothing itself."""
