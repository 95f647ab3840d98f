module github.com/countersign-dev/countersign

go 1.26

require github.com/gowebpki/jcs v1.0.2 // indirect
