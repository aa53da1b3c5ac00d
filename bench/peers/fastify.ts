/** No event ids, no outbox; concurrent updates can be lost. */
import type { PeerSettings } from '../targets/peers.js';
import { createLastWriteStore, startFastify } from './fastify-app.js';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
await startFastify(settings, createLastWriteStore(settings.redisUrl));
