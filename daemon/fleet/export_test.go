package fleet

// SharesDocument reports whether two clusters have one copy of a document.
func (c *Cluster) SharesDocument(other *Cluster, path string) bool {
	one, two := c.docs.all()[path], other.docs.all()[path]
	return one != nil && two != nil && one.packedDocument == two.packedDocument
}

// SharesSelection reports whether two clusters have one copy of what is mirrored of them. It may be called while
// neither of them is being discovered.
func (c *Cluster) SharesSelection(other *Cluster) bool { return c.selected == other.selected }
