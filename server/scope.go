package server

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/server/table"
)

// now is the time that ages are counted to.
func (s *Server) now() time.Time { return time.Now() }

// noPrinter prints a table of nothing.
var noPrinter table.Printer = table.For(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
