import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import '../../src/store/redis/connection/client.js';

test('who uses Redis has fast texts: what ioredis declares leaves String.prototype a dictionary', () => {
  setFlagsFromString('--allow-natives-syntax');
  assert.equal(runInThisContext('%HasFastProperties(String.prototype)'), true);
});
