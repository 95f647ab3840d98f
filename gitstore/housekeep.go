package gitstore

func (r *Repo) notePacks(packs ...string) error { return nil }
func (r *Repo) mergePacks(source) error         { return nil }
