import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
// Without this a SIGTERM ends the process at once: no load is drained, and locks last until their leases end.
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000, '127.0.0.1');
