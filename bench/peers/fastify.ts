/** Fastify with ioredis: a read and a write of Redis per request, and nothing that outlives the request. */
import type { PeerSettings } from '../peers.js';
import { createApp, serve } from './fastify-app.js';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
await serve(createApp(settings), settings.port);
