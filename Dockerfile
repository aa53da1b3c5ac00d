# The service for an external Redis and ClickHouse (ROLE=api or ROLE=pipeline). The image contains neither redis-server
# nor the ClickHouse engine of chdb (540 MB). With `--target import` it contains the engine, which reads files for cli-import. Based on Debian: uWebSockets.js has no binaries for musl.
FROM node:22.23.3-bookworm-slim AS node

FROM node AS base
WORKDIR /app
COPY package.json package-lock.json ./

# Omit optional packages: the engine of chdb, and native add-ons that their packages can do without.
FROM base AS packages
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error
# Keep only the binary for this platform.
RUN find node_modules/uWebSockets.js -name '*.node' \
    ! -name "uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" -delete

FROM base AS packages-with-engine
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error

# The binary of esbuild is an optional package, so this stage installs all packages.
FROM base AS build
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY tsconfig.json ./
COPY src src
COPY workers workers
RUN node src/build.mjs dist --bundles

FROM node AS service
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/package.json ./
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Exec form, so that node is process 1 and receives SIGTERM. The first argument selects the bundle: main (the service),
# cli-keys, or in the image `import` cli-import.
ENTRYPOINT ["node", "-e", "const [, name, ...args] = process.argv; import(`/app/dist/bundle/${name}.js`).then((module) => module.main(args))", "--"]
CMD ["main"]

FROM service AS import
COPY --from=packages-with-engine /app/node_modules node_modules
CMD ["cli-import", "--help"]

# The last stage is the default.
FROM service
