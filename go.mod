module github.com/shedbolt/shedbolt

go 1.26.0
