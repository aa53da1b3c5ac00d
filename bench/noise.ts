/** The machine's noise: the bare echo again and again through a run, between whatever else is measured. */
import { sumOf } from '../src/lists.js';
import { type Bench, warm } from './bench.js';
import { usualTraffic } from './load/traffic.js';
import { measure } from './measure.js';
import type { Noise } from './results.js';
import { peerContestant } from './scenario.js';

const seconds = 1;

export interface NoiseWatch {
  look(): Promise<void>;
  readonly told: Noise;
}

/** @param key that the echo is asked with, which it does not look at */
export function watchNoise(bench: Bench, key: string): NoiseWatch {
  const told = { cpu: [] as number[], perSecond: [] as number[] };
  const progress = (text: string): void => bench.progress(`noise: ${text}`);
  const look = async (): Promise<void> => {
    const contestant = peerContestant(await bench.peer('echo'), key, usualTraffic);
    await warm({ ...bench, progress }, contestant);
    progress(contestant.name);
    const { connections } = bench.settings;
    const sample = await measure(bench.runner, contestant, { connections, seconds, rate: null });
    told.cpu.push(sumOf(Object.values(sample.cpu)));
    told.perSecond.push(sample.perSecond);
  };
  return { look, told };
}
