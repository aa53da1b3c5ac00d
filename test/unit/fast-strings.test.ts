import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import '../../src/store/redis/connection/client.js';

test('The Redis client restores the fast properties of String.prototype, which ioredis removes', () => {
  setFlagsFromString('--allow-natives-syntax');
  assert.equal(runInThisContext('%HasFastProperties(String.prototype)'), true);
});
