// A ledger client in a process of its own: the first message from its parent starts it, the second one stops it.
import { once } from 'node:events';
import { startClient } from './client.js';

process.once('disconnect', () => process.exit(1));
const [settings] = await once(process, 'message');
const client = startClient(settings);
await once(process, 'message');
const ledger = await client.stop();
process.send?.(ledger, undefined, undefined, () => process.disconnect());
