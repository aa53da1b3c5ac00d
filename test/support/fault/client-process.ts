// A ledger client in a process of its own: the first message from its parent starts it, the second one stops it.
import { on } from 'node:events';
import { startClient } from './client.js';

process.once('disconnect', () => process.exit(1));
// On a busy machine both may be there when the process gets to read them: none may pass unheard.
const messages = on(process, 'message');
const nextMessage = async () => (await messages.next()).value[0];
const client = startClient(await nextMessage());
await nextMessage();
const ledger = await client.stop();
process.send?.(ledger, undefined, undefined, () => process.disconnect());
