package rest

import "sync"

// A Memory keeps answers by what was asked. Its zero value is empty, and several
// goroutines may use it: each question is asked once.
type Memory[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

// Get returns what is known of a key, or asks and keeps the answer. An error is not kept.
func (m *Memory[K, V]) Get(key K, ask func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.known[key]; ok {
		return v, nil
	}
	v, err := ask()
	if err != nil {
		var none V
		return none, err
	}
	if m.known == nil {
		m.known = map[K]V{}
	}
	m.known[key] = v
	return v, nil
}

// Clear forgets all.
func (m *Memory[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}
