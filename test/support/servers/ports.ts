import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { TestContext } from 'node:test';

/** Listens on a loopback port until the test ends. @param port 0: any free port @returns the port */
export async function takePort(t: TestContext, port = 0): Promise<number> {
  const holder = createServer().listen(port, '127.0.0.1');
  await once(holder, 'listening');
  t.after(() => holder.close());
  return (holder.address() as AddressInfo).port;
}
