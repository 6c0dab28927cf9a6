"""What judging will cost, told before anything is asked: the judge is run with guessed replies, and each is priced."""
