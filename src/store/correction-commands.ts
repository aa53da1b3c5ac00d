/** The scripts of corrections as commands of ioredis. */
import type { Cluster, Redis, Result } from 'ioredis';
import {
  closeErasureScript,
  eraseLearnerScript,
  lookedAtEndedScript,
  passErasuresScript,
  planCorrectionScript,
  readDueScript,
  removeParkedScript,
  settleCorrectionScript,
} from './correction-scripts.js';
import { forgetIdsScript } from './id-scripts.js';
import { takeBackScript } from './take-back-script.js';

export function defineCorrections(client: Redis | Cluster): void {
  client.defineCommand('eraseLearner', { lua: eraseLearnerScript, numberOfKeys: 1 });
  client.defineCommand('lookedAtEnded', { lua: lookedAtEndedScript, numberOfKeys: 1 });
  client.defineCommand('closeErasure', { lua: closeErasureScript, numberOfKeys: 1 });
  client.defineCommand('passErasures', { lua: passErasuresScript, numberOfKeys: 1 });
  client.defineCommand('readDue', { lua: readDueScript, numberOfKeys: 1 });
  client.defineCommand('planCorrection', { lua: planCorrectionScript, numberOfKeys: 1 });
  client.defineCommand('settleCorrection', { lua: settleCorrectionScript, numberOfKeys: 1 });
  client.defineCommand('removeParked', { lua: removeParkedScript, numberOfKeys: 1 });
  client.defineCommand('takeBack', { lua: takeBackScript, numberOfKeys: 1 });
  client.defineCommand('forgetIds', { lua: forgetIdsScript, numberOfKeys: 1 });
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    eraseLearner(
      prefix: string,
      name: string,
      id: string,
      record: string,
      correction: string,
      mostOpen: number,
      hash: string,
      mostEnded: number,
    ): Result<[string, string], Context>;
    lookedAtEnded(prefix: string, hash: string, text: string, next: string): Result<null, Context>;
    closeErasure(prefix: string, id: string, name: string): Result<number, Context>;
    passErasures(prefix: string, end: string, ...passed: string[]): Result<null, Context>;
    readDue(prefix: string, most: number): Result<[head: string, ...(string | number)[]], Context>;
    planCorrection(
      prefix: string,
      id: string,
      text: string,
      plan: string,
    ): Result<[string, number] | [], Context>;
    settleCorrection(
      prefix: string,
      id: string,
      text: string,
      erasureId: string,
      before: string,
      ...removed: (string | number)[]
    ): Result<number, Context>;
    takeBack(prefix: string, request: Buffer): Result<string, Context>;
    forgetIds(prefix: string, ...ids: (Buffer | number)[]): Result<number, Context>;
    removeParked(prefix: string, ...entries: string[]): Result<number, Context>;
  }
}
