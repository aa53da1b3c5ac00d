/** The scripts of corrections as commands of ioredis. */
import type { Cluster, Redis, Result } from 'ioredis';
import {
  closeErasureScript,
  eraseLearnerScript,
  lookedAtEndedScript,
  planCorrectionScript,
  readDueScript,
  removeParkedScript,
  settleCorrectionScript,
  trimOutboxScript,
} from './correction-scripts.js';
import { takeBackScript } from './take-back-script.js';

export function defineCorrections(client: Redis | Cluster): void {
  client.defineCommand('eraseLearner', { lua: eraseLearnerScript, numberOfKeys: 1 });
  client.defineCommand('lookedAtEnded', { lua: lookedAtEndedScript, numberOfKeys: 1 });
  client.defineCommand('closeErasure', { lua: closeErasureScript, numberOfKeys: 1 });
  client.defineCommand('trimOutbox', { lua: trimOutboxScript, numberOfKeys: 1 });
  client.defineCommand('readDue', { lua: readDueScript, numberOfKeys: 1 });
  client.defineCommand('planCorrection', { lua: planCorrectionScript, numberOfKeys: 1 });
  client.defineCommand('settleCorrection', { lua: settleCorrectionScript, numberOfKeys: 1 });
  client.defineCommand('removeParked', { lua: removeParkedScript, numberOfKeys: 1 });
  client.defineCommand('takeBack', { lua: takeBackScript, numberOfKeys: 1 });
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
    trimOutbox(prefix: string, end: string, rows: number, ...passed: string[]): Result<null, Context>;
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
    takeBack(prefix: string, ...args: (string | number | Buffer)[]): Result<string, Context>;
    removeParked(prefix: string, ...entries: string[]): Result<number, Context>;
  }
}
