/** Fastify with ioredis: validates, one HMGET, one HSET; no event ids, no outbox, and updates at once can be lost. */
import type { PeerSettings } from '../peers.js';
import { lastWriteWins, serve } from './fastify-app.js';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
await serve(settings, lastWriteWins(settings.redisUrl));
