// Preloaded for ThreadSanitizer. A contended Mutex of Swift's Synchronization library is locked and unlocked inside
// libswiftSynchronization.so, which is not instrumented: the sanitizer does not see that the lock is handed over, and reports
// races on the data that the mutex guards. This library reports the hand-over to the sanitizer, and suppresses nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
typedef __attribute__((swiftcall)) void (*lock_t)(uint32_t, __attribute__((swift_context)) void *);
typedef __attribute__((swiftcall)) void (*unlock_t)(__attribute__((swift_context)) void *);

__attribute__((swiftcall)) void lock_slow(uint32_t owner, __attribute__((swift_context)) void *mutex) __asm__(LOCK);
__attribute__((swiftcall)) void lock_slow(uint32_t owner, __attribute__((swift_context)) void *mutex) {
    ((lock_t)dlsym(RTLD_NEXT, LOCK))(owner, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

__attribute__((swiftcall)) void unlock_slow(__attribute__((swift_context)) void *mutex) __asm__(UNLOCK);
__attribute__((swiftcall)) void unlock_slow(__attribute__((swift_context)) void *mutex) {
    if (__tsan_release) __tsan_release(mutex);
    ((unlock_t)dlsym(RTLD_NEXT, UNLOCK))(mutex);
}
