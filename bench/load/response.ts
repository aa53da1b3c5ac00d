/** Parses HTTP/1.1 with Content-Length, from pieces of any size. */

const headEnd = '\r\n\r\n';
const lengthName = 'ontent-length: ';
const maxHead = 8192;

/** The result reads `length` bytes of a buffer, which the caller can reuse. */
export function createResponseReader(
  onAnswer: (status: number) => void,
): (buffer: Buffer, length: number) => void {
  let status = 0;
  /** Null until the head is complete. */
  let missing: number | null = null;
  let begun = '';

  const takeBody = (length: number): void => {
    missing = (missing as number) - length;
    if (missing < 0) throw new Error('more came than the answer to one request');
    if (missing > 0) return;
    missing = null;
    onAnswer(status);
  };

  return (buffer, length) => {
    if (missing !== null) {
      takeBody(length);
      return;
    }
    const head = begun + buffer.toString('latin1', 0, Math.min(length, maxHead));
    const end = head.indexOf(headEnd);
    if (end < 0) {
      begun = head;
      return;
    }
    status = Number(head.slice(9, 12));
    missing = contentLength(head.slice(0, end + 2));
    const ofHead = end + headEnd.length - begun.length;
    begun = '';
    takeBody(length - ofHead);
  };
}

function contentLength(head: string): number {
  const at = head.toLowerCase().indexOf(lengthName);
  if (at < 0) throw new Error(`an answer without Content-Length: ${head}`);
  return Number.parseInt(head.slice(at + lengthName.length, head.indexOf('\r', at)), 10);
}
