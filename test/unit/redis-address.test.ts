import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisAddress } from '../../src/contracts/redis.js';

test('the first node says how to log in to all', () => {
  assert.deepEqual(redisAddress('rediss://us%40er:p%3Aw@a:7000, rediss://b:7001'), {
    nodes: ['rediss://us%40er:p%3Aw@a:7000', 'rediss://b:7001'],
    login: { username: 'us@er', password: 'p:w', tls: {} },
  });
  assert.deepEqual(redisAddress('redis://:secret@a').login, { password: 'secret' });
  assert.deepEqual(redisAddress('redis://a').login, {});
});
