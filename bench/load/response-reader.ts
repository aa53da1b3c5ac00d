/** Parses HTTP/1.1 with Content-Length, from pieces of any size. */

const headEnd = '\r\n\r\n';
const lengthName = 'ontent-length: ';
const maxHead = 8192;

/** The result reads `length` bytes of a buffer, which the caller can reuse. */
export function createResponseReader(
  onResponse: (status: number) => void,
): (buffer: Buffer, length: number) => void {
  let status = 0;
  /** Null until the head is complete. */
  let missingBytes: number | null = null;
  let partialHead = '';

  const consumeBody = (length: number): void => {
    missingBytes = (missingBytes as number) - length;
    if (missingBytes < 0) throw new Error('received more bytes than one response');
    if (missingBytes > 0) return;
    missingBytes = null;
    onResponse(status);
  };

  return (buffer, length) => {
    if (missingBytes !== null) {
      consumeBody(length);
      return;
    }
    const head = partialHead + buffer.toString('latin1', 0, Math.min(length, maxHead));
    const end = head.indexOf(headEnd);
    if (end < 0) {
      partialHead = head;
      return;
    }
    status = Number(head.slice(9, 12));
    missingBytes = parseContentLength(head.slice(0, end + 2));
    const ofHead = end + headEnd.length - partialHead.length;
    partialHead = '';
    consumeBody(length - ofHead);
  };
}

function parseContentLength(head: string): number {
  const at = head.toLowerCase().indexOf(lengthName);
  if (at < 0) throw new Error(`response without Content-Length: ${head}`);
  return Number.parseInt(head.slice(at + lengthName.length, head.indexOf('\r', at)), 10);
}
