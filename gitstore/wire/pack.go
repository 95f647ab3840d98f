package wire

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
)

// copyPack copies a pack whose first and last bytes are right: it begins as
// packs do and ends with the SHA-1 of what comes before.
func copyPack(w io.Writer, r io.Reader, limit int64) error {
	sum := sha1.New()
	buf := make([]byte, 64<<10)
	var total int64
	var kept []byte // the last 20 bytes, or fewer, which may be the trailer
	for {
		n, err := io.ReadFull(r, buf)
		if total == 0 && !bytes.HasPrefix(buf[:n], []byte("PACK\x00\x00\x00\x02")) && (err == nil || isEnd(err)) {
			return errors.New("the answer is no pack")
		}
		if total += int64(n); total > limit {
			return ErrTooLarge
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		kept = append(kept, buf[:n]...)
		if cut := len(kept) - sha1.Size; cut > 0 {
			sum.Write(kept[:cut])
			kept = append(kept[:0], kept[cut:]...)
		}
		switch {
		case err == nil:
		case !isEnd(err):
			return err
		case total < 12+sha1.Size || !bytes.Equal(kept, sum.Sum(nil)):
			return errors.New("the pack is cut or damaged")
		default:
			return nil
		}
	}
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
