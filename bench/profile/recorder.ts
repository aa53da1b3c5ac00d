/** Runs in each thread of a profiled service. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

/** Profiles run while this file exists. It contains their folder. */
export const requestFile = (folder: string): string => join(folder, 'request');

const checkMs = 100;
const sampleMicros = 500;

export function profileOnRequest(folder: string, name: () => string): void {
  let profile: { readonly session: Session; readonly into: string } | null = null;
  const checkRequest = (): void => {
    const asked = existsSync(requestFile(folder));
    if (asked && profile === null)
      profile = { session: startProfile(), into: readFileSync(requestFile(folder), 'utf8') };
    if (asked || profile === null) return;
    stopProfile(profile.session, join(profile.into, `${name()}-${process.pid}-${threadId}`));
    profile = null;
  };
  setInterval(checkRequest, checkMs).unref();
}

function startProfile(): Session {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: sampleMicros });
  session.post('Profiler.start');
  return session;
}

function stopProfile(session: Session, file: string): void {
  session.post('Profiler.stop', (error, told) => {
    session.disconnect();
    if (error !== null) throw error;
    writeFileSync(file, JSON.stringify(told.profile));
    renameSync(file, `${file}.cpuprofile`);
  });
}
